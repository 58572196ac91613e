"""What an application shows of itself while it runs: values at marked points, and spans."""
