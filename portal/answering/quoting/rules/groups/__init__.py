"""Groups of things that must not be mistaken for each other: weekdays, cities, kinds of leave."""
