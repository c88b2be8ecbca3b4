"""Other stores that a user would pick, each driven by a script that runs in an environment of its own.

A script is started as `PYTHON chroma.py FOLDER` by `bench.search`, with the Python of an environment that has the peer
and numpy; neither muniment nor `bench` need be there. It reads what to store and what to ask from FOLDER, and prints
one JSON object. `exchange` says how both look.
"""
