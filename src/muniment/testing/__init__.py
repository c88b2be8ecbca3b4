"""What an author of an adapter needs to prove it: conformance suites, broken adapters, doubles, strategies.

Nothing here is imported by the engine. It needs pytest and Hypothesis: `pip install 'muniment[testing]'`.
"""
