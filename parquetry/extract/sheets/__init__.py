"""Spreadsheets: XLSX, XLSB, XLS and ODS, values and formulas."""
