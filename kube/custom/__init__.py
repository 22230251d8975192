"""Custom resources: CustomResourceDefinitions, checked and applied.

definition  whether a CustomResourceDefinition is valid, and how it may change
schemas     is the schema of a version structural
structural  objects against a schema: prune, default, check
kinds       a definition as entries of the resource table
scale       an object as a Scale, and back

Texts are those of k8s.io/apiextensions-apiserver 0.34 and k8s.io/kube-openapi,
so that clients read refusals as they are used to.
"""

from __future__ import annotations
