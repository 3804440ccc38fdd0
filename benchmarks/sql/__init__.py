"""What SQL costs: the queries of Nexmark in SQL beside the same in YAML."""
