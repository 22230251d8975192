"""Admission webhooks: our rules for Volcano's kinds, asked by a cluster's API server about what others write.

`hooks` says which there are and how the API server learns of them, `review` reads its questions and writes answers,
`rulings` asks the rules, over the mirror. `rotation` says when a certificate is renewed, `keys` makes it, and
`keeper` keeps it in a Secret of the cluster. `volcano_ui.webhooks` is the program. See docs/design/webhooks.md.
"""
