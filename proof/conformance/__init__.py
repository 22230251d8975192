"""What the reference asks for, and which test shows that it is so.

    reference/      the items, page by page and chapter by chapter, in our own words
    collecting      which tests are marked as showing an item: `@pytest.mark.shows("3.1/PodFailed", "queues 1.9/root")`
    document        docs/conformance-*.md, made from both, and what is wrong with them

`make conformance` writes the pages; test_conformance.py fails when one is
stale, when an item is neither shown nor said not to be done, and when a
marker names no item.
"""
