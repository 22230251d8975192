"""How much the tests protect: defects made by machine in rules and controllers, and who finds each.

    mutations    which small defects can be made in a module (pure)
    listing      mutants.jsonl: the defects that were drawn once by a seed, and who found each
    planting     a copy of the tree that has all of them, each asleep
    switch       which of them is awake in a process, and which a test reaches
    recorder     the plugin of pytest that says which test runs
    hunting      the tests that reach a defect, then the simulation, until one finds it
    report       docs/mutants.md

A defect is asleep as `(after if mutant(17) else before)`, so that one copy of the tree does for all of them, and one run of
the tests tells which test reaches which. mutmut leaves decorated functions alone and sees one process only, and cosmic-ray
knows no tests but all of them; each test here takes seconds, and starts processes.
"""
