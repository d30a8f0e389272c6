"""Payloads that one host keeps and another reads, wherever they are."""

import pytest

from backstay.errors import WorkerMisfit


async def assert_shared(here, there, large):
    """Keep a small and a large payload of `w/1`, and read them elsewhere, also as those of a run that follows.

    Return the refs of both that may be shown, and of both that are sealed.
    """
    first, second = here.blobs.of("w/1"), there.blobs.of("w/2")
    refs = [await first.put(data) for data in (b"small", large)]
    sealed = [await first.seal(data) for data in (b"small", large)]
    await second.follow("w/1")
    await second.share()
    for blobs in (there.blobs.of("w/1"), second):
        assert [await blobs.get(ref) for ref in refs] == [b"small", large]
        assert [await blobs.unseal(ref) for ref in sealed] == [b"small", large]
    for ref in refs:
        with pytest.raises(WorkerMisfit):
            await there.blobs.of("w/3").get(ref)
    return refs, sealed
