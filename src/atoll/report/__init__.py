"""What users see of results, profiles and machines. Pure.

`svg` has the picture kit and the palette; `bench`, `profile`, `machine` and `terminal` hold one
subject each. `pages` fills the HTML templates, `numbers` formats figures.
"""
