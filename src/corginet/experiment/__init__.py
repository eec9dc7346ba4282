"""The experiment engine: recipes × seeds on one dataset, as rows that outlive an interruption."""
