SELECT * FROM stragglers
