"""Memory for LLM agents that can be searched, proved and erased."""
