"""Plots of decisions and plans as SVG."""
