"""Who is better, and how sure that is: numbers, pictures and the report of a run."""
