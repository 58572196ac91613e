"""NorthStar: recorded conversations and graders."""
