"""The tasks in plain Python, with one process."""


def distinct(text: str, rows: list[str]) -> list[str]:
    found: set[str] = set()
    for path in rows:
        with open(path) as file:
            found.update(file.read().splitlines())
    return list(found)
