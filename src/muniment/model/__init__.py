"""Frozen values, without I/O: what is stored, found, folded and handed out."""
