"""What the reference of Volcano's Job asks for, and which test shows that it is so.

    reference/      the items, chapter by chapter, in our own words
    collecting      which tests are marked as showing an item: `@pytest.mark.shows("3.1/PodFailed")`
    document        docs/conformance-jobs.md, made from both, and what is wrong with them

`make conformance` writes the document; test_conformance.py fails when it is
stale, when an item is neither shown nor said not to be done, and when a
marker names no item.
"""
