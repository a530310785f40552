"""A plugin of pytest: SQLAlchemy's suite without views, which Remora does not have and which most of
the tests of reflection would make beside their tables."""

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection():
    from sqlalchemy.testing import exclusions
    from sqlalchemy.testing.suite import HasTableTest
    from test.requirements import DefaultRequirements

    for name in [
        "views",
        "view_column_reflection",
        "view_reflection",
        "temporary_views",
        "create_or_replace_view",
    ]:
        setattr(DefaultRequirements, name, property(lambda self: exclusions.closed()))
    # It asks for the requirement in a way that is always answered with yes.
    HasTableTest.define_views = classmethod(lambda cls, metadata: None)
