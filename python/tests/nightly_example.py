"""The example of the documents, as a project file."""

from mirab import flow, task


@task(resources={"db": 1})
def load(rows: int) -> int:
    return rows


@flow(max_concurrent=1, on_overlap="skip", priority=5, resources={"gpu": 1})
def nightly(rows: int = 10) -> int:
    return load(rows)


assert nightly() == 10
assert nightly.options["max_concurrent"] == 1
