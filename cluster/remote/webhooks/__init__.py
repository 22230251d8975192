"""Admission webhooks: a cluster's API server has our rules judge what others write of Volcano's kinds.

`hooks` says which there are and how the API server learns of them, `review` reads its questions and writes answers,
`rulings` asks the rules, over the mirror. `rotation` says when a certificate is renewed, `keys` makes it, and
`keeper` keeps it in a Secret of the cluster. `volcano_ui.webhooks` is the program. See docs/design/webhooks.md.
"""
