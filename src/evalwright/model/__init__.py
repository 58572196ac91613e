"""The nouns: pydantic models for what people write, msgspec structs for what evalwright writes."""
