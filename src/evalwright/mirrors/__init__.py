"""Places that are told what a run stores: one module each; what fails there never stops a run."""
