"""Files: written whole or not at all, models that are read without trust, arrays larger than memory."""
