"""The nouns: authored ones are pydantic models, produced ones are msgspec structs."""
