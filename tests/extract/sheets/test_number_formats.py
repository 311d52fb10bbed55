"""Numbers and dates look as in their cells."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta

import pytest

from parquetry.extract.sheets.number_formats import LONGEST_CODE, number_format

MOMENT = datetime(2025, 3, 14, 15, 9, 26, 535000)
ACCOUNTING = '_("$"* #,##0.00_);_("$"* \\(#,##0.00\\);_("$"* "-"??_);_(@_)'


@pytest.mark.parametrize(
    ("code", "value", "seen"),
    [
        ("0%", 0.256, "26%"),
        ("0.0%", 0.256, "25.6%"),
        ("0.00%", -0.01234, "-1.23%"),
        ("#,##0", 1234567.6, "1,234,568"),
        ("#,##0.00", -1234.5, "-1,234.50"),
        ("$#,##0.00", 1234.5, "$1,234.50"),
        ('"$"#,##0_);\\("$"#,##0\\)', -1234.5, "($1,235)"),
        (ACCOUNTING, -5.5, "$(5.50)"),
        (ACCOUNTING, 0, "$-"),
        ("#,##0.00 [$€-407]", 1234.5, "1,234.50 €"),
        ("[$£-809]#,##0", 99, "£99"),
        ("0.00E+00", 12345.678, "1.23E+04"),
        ("##0.0E+0", 12345.678, "12.3E+3"),
        ("# ?/?", 1.75, "1 3/4"),
        ("# ??/??", 1 / 3, "1/3"),
        ("0/100", 0.25, "25/100"),
        ("0000", 42, "0042"),
        ("(000) 000-0000", 5551234567, "(555) 123-4567"),
        ("#,##0,", 1234567, "1,235"),
        ('0.0,,"M"', 12345678, "12.3M"),
        ("0.##", 1.5, "1.5"),
        ("#.00", 0.5, ".50"),
        ("[Red]0.00", 1.239, "1.24"),
        ("[>=1000]#,##0;0.0", 1500, "1,500"),
        ("[>=1000]#,##0;0.0", 12.34, "12.3"),
        ('0" kg"', 3.6, "4 kg"),
        ('0.00;-0.00;"nil"', 0, "nil"),
        ("0", -0.4, "0"),
        ("#,##0.00", 1.005, "1.01"),
        ('General" units"', 5, "5 units"),
    ],
)
def test_numbers_are_shown_by_their_format(code, value, seen):
    assert number_format(code).show(value) == seen


@pytest.mark.parametrize(
    ("code", "value", "seen"),
    [
        ("yyyy-mm-dd", MOMENT, "2025-03-14"),
        ("dd.mm.yyyy hh:mm", MOMENT, "14.03.2025 15:09"),
        ("d mmm yyyy", MOMENT, "14 Mar 2025"),
        ("m/d/yy h:mm AM/PM", MOMENT, "3/14/25 3:09 PM"),
        ("hh:mm:ss", MOMENT, "15:09:27"),
        ("[$-407]d. mmmm yyyy", MOMENT, "14. März 2025"),
        ("[$-409]dddd, mmmm d, yyyy;@", date(2025, 3, 14), "Friday, March 14, 2025"),
        ("[h]:mm", timedelta(hours=27, minutes=5), "27:05"),
        ("mm:ss.0", time(0, 3, 4, 500000), "03:04.5"),
        ('yyyy"年"m"月"d"日"', MOMENT, "2025年3月14日"),
        ("h:mm", time(9, 5), "9:05"),
        ("mmm-yy", MOMENT, "Mar-25"),
    ],
)
def test_dates_are_shown_by_their_format(code, value, seen):
    assert number_format(code).show(value) == seen


@pytest.mark.parametrize("code", ["General", "@", "", "0" * (LONGEST_CODE + 1)])
def test_formats_that_change_nothing_and_too_long_ones_are_none(code):
    assert number_format(code) is None


@pytest.mark.parametrize("value", [1e15, -1e300, float("inf"), float("nan"), True])
def test_values_that_no_format_is_for_stay_as_they_are(value):
    assert number_format("#,##0.00").show(value) is None


@pytest.mark.parametrize(
    "code", ["[", '"', "\\", "0.0.0", "/", "#/#", "E+", "0E+", "%%", ";;", ",", "[$-]0", "?" * 200]
)
@pytest.mark.parametrize("value", [0, -1.5, 1e14, MOMENT, timedelta(days=-1), time(1)])
def test_odd_formats_are_no_error(code, value):
    found = number_format(code)
    assert found is None or isinstance(found.show(value), str | None)
