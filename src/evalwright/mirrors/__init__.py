"""Further outputs of a run, one module each; a failure there never stops a run."""
