select range as id, range * 2 as price from range(3)
