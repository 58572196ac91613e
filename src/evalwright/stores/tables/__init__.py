"""What the two database stores share."""
