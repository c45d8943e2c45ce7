"""Dates in Chinese: 9月2日, not 09月2日."""

MONTH_DAY_FORMAT = "n月j日"
