import shutil
import subprocess

import pytest

from gputree.backends import source


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    """An empty kernels folder beside an empty package, in use for one test."""
    folder = tmp_path / "kernels"
    folder.mkdir()
    (folder / "common.cuh").write_text("#pragma once\nint common;\n")
    monkeypatch.setattr(source, "_PACKAGE", tmp_path / "gputree")
    return folder


def test_the_folder_beside_the_package_is_found(kernels):
    assert source.kernels_folder() == kernels


def test_the_folder_inside_the_package_comes_first(kernels):
    inside = kernels.parent / "gputree" / "kernels"
    shutil.copytree(kernels, inside)
    assert source.kernels_folder() == inside


@pytest.mark.parametrize("stranger", [False, True])
def test_no_folder_is_an_error_that_says_where_it_looked(kernels, stranger):
    shutil.rmtree(kernels)
    if stranger:  # somebody else's package of that name lies beside ours
        kernels.mkdir()
        (kernels / "__init__.py").touch()
    with pytest.raises(FileNotFoundError, match=r"without its kernels/ folder \(looked in .* and .*\); reinstall it"):
        source.kernels_folder()


def test_headers_are_spliced_once_and_lines_keep_their_numbers(kernels):
    (kernels / "scan.cuh").write_text('#include "common.cuh"\nint scan;\n')
    (kernels / "a.cu").write_text('// a\n#include "scan.cuh"\n#include "common.cuh"\n#include <cuda.h>\nint a;')
    assert source.read_kernel("a.cu").splitlines() == [
        '#line 1 "a.cu"',
        "// a",
        '#line 1 "scan.cuh"',
        '#line 1 "common.cuh"',
        "",  # the pragma
        "int common;",
        '#line 2 "scan.cuh"',
        "int scan;",
        '#line 3 "a.cu"',
        "",  # common.cuh is there already
        "#include <cuda.h>",
        "int a;",
    ]


def test_headers_that_name_each_other_end(kernels):
    (kernels / "one.cuh").write_text('#include "two.cuh"\nint one;\n')
    (kernels / "two.cuh").write_text('  #  include "one.cuh"\nint two;\n')
    text = source.read_kernel("one.cuh")
    assert (text.count("int one;"), text.count("int two;")) == (1, 1)


def test_an_include_in_a_line_comment_stays(kernels):
    (kernels / "a.cu").write_text('// #include "nothing.cuh"\n')
    assert source.read_kernel("a.cu") == '#line 1 "a.cu"\n// #include "nothing.cuh"\n'


def test_an_edited_header_is_read_again(kernels):
    (kernels / "a.cu").write_text('#include "common.cuh"\n')
    before = source.read_kernel("a.cu")
    (kernels / "common.cuh").write_text("int edited;\n")
    assert "int edited;" not in before
    assert "int edited;" in source.read_kernel("a.cu")


@pytest.mark.parametrize("text", [None, '#include "nothing.cu"\n'])
def test_an_absent_file_is_named_with_those_there_are(kernels, text):
    if text is not None:
        (kernels / "a.cu").write_text(text)
    with pytest.raises(FileNotFoundError, match=r"'nothing\.cu' is not in .*; it must be one of: .*common\.cuh"):
        source.read_kernel("nothing.cu" if text is None else "a.cu")


def test_a_compiler_names_the_real_file_and_line(kernels, tmp_path, compiler):
    (kernels / "bad.cuh").write_text('#include "common.cuh"\n\nnonsense here;\n')
    (kernels / "a.cu").write_text('#include "bad.cuh"\nint a = "text";\n')
    (tmp_path / "a.cpp").write_text(source.read_kernel("a.cu"))
    done = subprocess.run([compiler, "-fsyntax-only", tmp_path / "a.cpp"], capture_output=True, text=True, check=False)
    assert "bad.cuh:3:" in done.stderr
    assert "a.cu:2:" in done.stderr


def test_every_shipped_kernel_can_be_read():
    folder = source.kernels_folder()
    for path in folder.glob("*.cu*"):
        text = source.read_kernel(path.name)
        assert '#include "' not in text
        for header in {line.split('"')[1] for line in path.read_text().splitlines() if line.startswith('#include "')}:
            assert text.count(f'#line 1 "{header}"\n') == 1
