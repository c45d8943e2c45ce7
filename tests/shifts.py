"""Which worker process runs what, and when: the longest first, so that all end together."""

from xdist.scheduler import LoadScopeScheduling

# by how long they take; the others take seconds. No test depends on this order
_LONGEST_FIRST = """
    operators pages memory/test_kill test_killed_worker memory/test_restore memory/test_backup
    memory/test_crash memory/test_concurrency pages/test_accounts
    memory/test_move_under_load memory/test_databases memory/test_workers test_readme
    memory/management/test_commands pages/test_setup memory/management/test_bench_pages
    config/test_settings memory/management/test_move_memories
""".split()
# one worker would take as long with the pages as the others with all the rest
_OPERATORS = {
    f"pages/test_{name}"
    for name in ("agent_settings", "connect", "imports", "operators", "overview", "system")
}
# their product is their own
_APART = {"pages/test_accounts", "pages/test_setup"}


def shift_of(nodeid):
    """Return what a test belongs to: its file, or the files that share a running product."""
    name = nodeid.partition("::")[0].removeprefix("tests/").removesuffix(".py")
    if name in _OPERATORS:
        return "operators"
    return "pages" if name.startswith("pages/") and name not in _APART else name


def longest_first(item):
    """Sort the tests of long files before all others."""
    shift = shift_of(item.nodeid)
    return _LONGEST_FIRST.index(shift) if shift in _LONGEST_FIRST else len(_LONGEST_FIRST)


class Shifts(LoadScopeScheduling):
    """As `--dist loadfile`, in the order of the tests."""

    def __init__(self, config, log=None):
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid):
        return shift_of(nodeid)
