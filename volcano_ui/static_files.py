"""Where the files for the browser are collected."""

from __future__ import annotations

import json

from django.core.files.base import ContentFile
from servestatic.storage import CompressedManifestStaticFilesStorage


class Storage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # servestatic has no types
    """Compressed files with hashes in their names, and a manifest without details of the file system.

    Inodes and times differ where a wheel is installed, and two builds have to give the same bytes.
    """

    def add_stats_to_manifest(self) -> None:
        """Write the manifest in order, without the inodes and times that servestatic would add."""
        manifest = json.loads(self.read_manifest())
        self.manifest_storage.delete(self.manifest_name)
        self.manifest_storage.save(self.manifest_name, ContentFile(json.dumps(manifest, sort_keys=True).encode()))
