"""Groups of things of which one is not the other: weekdays, cities, kinds of leave."""
