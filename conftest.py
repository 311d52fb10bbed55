"""Have the helpers of the tests tell the values of a failed assertion, as the tests themselves do."""

import pytest

pytest.register_assert_rewrite("tests")
