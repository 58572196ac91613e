"""Archives of another machine write into their folder only, on every Python."""

import io
import sys
import tarfile

import pytest

from evalwright.files.archives import unpack


@pytest.fixture(params=["filters", "no filters"])
def python(request, monkeypatch):
    """Releases before Python 3.11.4 have no filters."""
    if request.param == "no filters":
        if sys.version_info >= (3, 14):
            pytest.skip("tarfile itself needs its filters")
        monkeypatch.delattr(tarfile, "data_filter", raising=False)


def packed(*members):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for member in members:
            member.size = 2 if member.isfile() else 0
            tar.addfile(member, io.BytesIO(b"hi"))
    archive.seek(0)
    return archive


def entry(name, kind=tarfile.REGTYPE, to=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, to, 0o755
    return info


@pytest.mark.filterwarnings("ignore:Python 3.14 will")  # of the newer Python that stands for an older one here
@pytest.mark.usefixtures("python")
def test_files_and_folders_are_written(tmp_path):
    unpack(packed(entry(".", tarfile.DIRTYPE), entry("./a", tarfile.DIRTYPE), entry("./a/b.txt")), tmp_path / "into")
    assert (tmp_path / "into" / "a" / "b.txt").read_text() == "hi"


@pytest.mark.usefixtures("python")
@pytest.mark.parametrize(
    "member",
    [entry("../out.txt"), entry("a/../../out.txt"), entry("a", tarfile.SYMTYPE, "/etc"), entry("p", tarfile.FIFOTYPE)],
    ids=lambda member: member.name,
)
def test_nothing_is_written_elsewhere(member, tmp_path):
    with pytest.raises(tarfile.TarError):
        unpack(packed(member), tmp_path / "into")
    assert not [path for path in tmp_path.rglob("*") if not path.is_dir()]
