"""Operations: health, setup, housekeeping."""
