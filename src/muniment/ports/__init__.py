"""What the engine asks of the outside: storage, time, randomness, embedders. One contract a file, with its laws."""
