"""Measurements, each beside its baseline and its target: `python -m bench`, results as JSON under `bench/results`.

A bench is a module with `main(arguments) -> int`: it prints a small table and writes what it found with
`bench.report.Report`. Machines differ and are busy, so ratios of medians of one run count, not single times.
"""
