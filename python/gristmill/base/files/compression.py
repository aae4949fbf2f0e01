"""Compressed files: their first bytes decide how they are read, and the end of a name how a file is written.

The rules are those of the command (crates/engine/src/input/compression.rs and decoder.rs). Python's own `gzip`, `bz2` and `lzma` are not
used to read, because they lose data in silence: what follows the first stream of bzip2 or xz, if it is padded or damaged, is left out.
The decoders below them are the same.

zstd is part of Python from 3.14 on. Before, it is read and written by pyarrow, which the other formats of tables need anyway, and so is lz4.
Of the two packages that could do it, `zstandard` takes a file that is cut short for a whole one, and pyarrow does not.
"""

from __future__ import annotations

import functools
import io
import os
import zlib
from collections.abc import Callable
from importlib import import_module
from typing import IO, Any, BinaryIO, Protocol, cast

from ..errors import PlanError
from ..printable import printable

#: The formats, by the end of a name in lower case.
_NAMES = {".gz": "gzip", ".bgz": "gzip", ".zst": "zstd", ".bz2": "bzip2", ".xz": "xz", ".lz4": "lz4", ".zip": "zip"}
_MAGICS = {
    "gzip": b"\x1f\x8b\x08",
    "zstd": b"\x28\xb5\x2f\xfd",
    "bzip2": b"BZh",
    "xz": b"\xfd7zXZ\0",
    "lz4": b"\x04\x22\x4d\x18",
    "zip": b"PK\x03\x04",
}
#: The bytes at the start of a file that suffice to recognise its format.
_MAGIC_BYTES = 10
#: Compressed bytes that are read at a time.
_STORED_BYTES = 64 << 10
#: Content that is buffered.
_BUFFER_BYTES = 256 << 10
#: The memory that decoding an xz file may take. One packed with `xz -9` takes 65 MiB.
_XZ_BYTES_MAX = 256 << 20


class Damaged(Exception):
    """A compressed file is not what it seems to be, or not whole."""

    def __init__(self, why: str, content_bytes: int = 0) -> None:
        super().__init__(why)
        #: The part of its content that was read before.
        self.content_bytes = content_bytes


def of_name(path: str) -> str | None:
    """Returns the compression that the name of a file claims.

    >>> of_name("logs/a.GZ"), of_name("a.txt")
    ('gzip', None)
    """
    return _NAMES.get(os.path.splitext(path)[1].lower())


def of_bytes(start: bytes) -> str | None:
    """Returns the compression of a file that begins with these bytes; ten are enough.

    >>> of_bytes(b"BZh91AY&SY"), of_bytes(b"BZh is no magic number")
    ('bzip2', None)
    """
    if start[:3] == _MAGICS["gzip"] and len(start) > 3 and not start[3] & 0xE0:
        return "gzip"
    # A frame, or a skippable frame as pzstd writes first.
    if start[:4] == _MAGICS["zstd"] or (start[1:4] == b"\x2a\x4d\x18" and 0x50 <= start[0] <= 0x5F):
        return "zstd"
    # A block, or the end of a stream without blocks.
    if start[:3] == _MAGICS["bzip2"] and start[3:4] in b"123456789" and start[4:10] in (b"1AY&SY", b"\x17\x72\x45\x38\x50\x90"):
        return "bzip2"
    # Version 1, and a reserved bit that is zero.
    if start[:4] == _MAGICS["lz4"] and len(start) > 4 and start[4] & 0xC2 == 0x40:
        return "lz4"
    # A header of a file, whose version is below 100; or an archive without a file.
    if (start[:4] == _MAGICS["zip"] and len(start) > 5 and start[4] < 100 and not start[5]) or start[:8] == b"PK\x05\x06\0\0\0\0":
        return "zip"
    return "xz" if start[:6] == _MAGICS["xz"] else None


def recognised(path: str, start: bytes) -> str | None:
    """Returns the compression of a file that begins with these bytes.

    It must be the one that its name claims, if that claims any.
    """
    found, claimed = of_bytes(start), of_name(path)
    if found is not None or claimed is None:
        return found
    kind = f"an {claimed} file" if claimed in ("lz4", "xz") else f"a {claimed} file"
    if not start:
        raise Damaged(f"it is empty, and {kind} never is")
    if _is_cut_off(claimed, start):
        raise Damaged(f"it is truncated: it ends after {len(start)} bytes")
    shown = start[:4].hex(" ")
    raise Damaged(f"it is not {kind}, although its name says so: it begins with the bytes {shown}")


def is_compressed(path: str) -> bool:
    """Whether a file is compressed, or claims to be."""
    if of_name(path) is not None:
        return True
    try:
        with open(path, "rb") as file:
            return of_bytes(file.read(_MAGIC_BYTES)) is not None
    except OSError:
        # Its reader says what is wrong.
        return False


def _is_cut_off(compression: str, start: bytes) -> bool:
    """Whether a file that is as short as this may be the beginning of a longer one."""
    magic = _MAGICS[compression]
    return len(start) < _MAGIC_BYTES and (magic.startswith(start) or start.startswith(magic))


# Reading.


def unpacked(path: str) -> io.BufferedReader:
    """Opens a file for reading its content, decompressed.

    Raises :class:`Damaged`, here or when it is read, and `OSError`.
    """
    file = cast("io.BufferedReader", open(path, "rb", _STORED_BYTES))
    try:
        start = file.read(_MAGIC_BYTES)
        compression = recognised(path, start)
        if file.seekable():
            # A file without a size may have content, as those of /proc do, but it can be read again.
            file.seek(0)
            stored: IO[bytes] = file
        else:
            stored = cast("IO[bytes]", io.BufferedReader(_Again(start, file), _STORED_BYTES))
    except BaseException:
        file.close()
        raise
    if compression is None:
        return cast("io.BufferedReader", stored)
    return io.BufferedReader(_Content(stored, compression), _BUFFER_BYTES)


class _Again(io.RawIOBase):
    """A pipe whose first bytes have been read."""

    def __init__(self, start: bytes, file: io.BufferedReader) -> None:
        self._start, self._file = start, file

    def readable(self) -> bool:
        return True

    def readinto(self, to: Any) -> int:
        given = self._start[: len(to)] or self._file.read1(len(to))
        self._start = self._start[len(given) :]
        to[: len(given)] = given
        return len(given)

    def close(self) -> None:
        self._file.close()
        super().close()


class _Decoder(Protocol):
    """The decoder of one member (gzip's word; the other formats call them frames or streams)."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Gzip:
    """The decoder of zlib, with the methods of the others."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(16 + zlib.MAX_WBITS)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        found = self._inner.decompress(self._inner.unconsumed_tail + data, max_length)
        self.needs_input = len(found) < max_length and not self._inner.unconsumed_tail
        return found


def _decoder(compression: str) -> Callable[[], _Decoder] | None:
    """Makes decoders; `None` for lz4, and for zstd before Python 3.14."""
    made: Callable[[], _Decoder] | None = None
    match compression:
        case "gzip":
            made = _Gzip
        case "bzip2":
            made = import_module("bz2").BZ2Decompressor
        case "xz":
            lzma = import_module("lzma")
            made = functools.partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, _XZ_BYTES_MAX)
        case "zstd" if (zstd := _zstd()) is not None:
            made = zstd.ZstdDecompressor
    return made


def _zstd() -> Any:
    """Python's own module for zstd; `None` before Python 3.14."""
    try:
        return import_module("compression.zstd")
    except ImportError:
        return None


def _missing(compression: str) -> str:
    if compression == "zstd":
        return "zstd needs pyarrow before Python 3.14: pip install 'gristmill[arrow]'"
    if compression == "lz4":
        return "lz4 needs pyarrow: pip install 'gristmill[arrow]'"
    return f"this Python was built without {compression}: install its library, and build Python again"


class _Content(io.RawIOBase):
    """The content of a compressed file, member after member."""

    def __init__(self, stored: IO[bytes], compression: str) -> None:
        self._stored, self._compression, self._content_bytes = stored, compression, 0
        try:
            if compression == "zip":
                self._read = self._only_file()
            else:
                decoder = _decoder(compression)
                self._read = self._arrow() if decoder is None else self._members(decoder)
        except ImportError as error:
            raise Damaged(_missing(compression)) from error

    def readable(self) -> bool:
        return True

    def readinto(self, to: Any) -> int:
        try:
            found = self._read(len(to))
        except Damaged as damaged:
            damaged.content_bytes = self._content_bytes
            raise
        to[: len(found)] = found
        self._content_bytes += len(found)
        return len(found)

    def close(self) -> None:
        self._stored.close()
        super().close()

    def _members(self, begin: Callable[[], _Decoder]) -> Callable[[int], bytes]:
        """Makes a function that returns some bytes of the content, none at its end."""
        decoder: _Decoder | None = begin()
        ahead = b""

        def read(most: int) -> bytes:
            nonlocal decoder, ahead
            while decoder is not None:
                if decoder.eof:
                    ahead = self._next(decoder.unused_data)
                    decoder = begin() if ahead else None
                    continue
                given = b""
                if decoder.needs_input:
                    given = ahead or self._stored.read(_STORED_BYTES)
                    ahead = b""
                    if not given:
                        raise self._truncated()
                try:
                    found = decoder.decompress(given, most)
                except MemoryError:
                    raise
                except Exception as error:
                    raise self._damaged(error) from error
                if found:
                    return found
            return b""

        return read

    def _next(self, rest: bytes) -> bytes:
        """The bytes with which the next member begins; none at the end of the file, which may be padded with zeros."""
        zeros = 0
        while True:
            zeros, rest = zeros + len(rest), rest.lstrip(b"\0")
            zeros -= len(rest)
            if len(rest) < _MAGIC_BYTES and (more := self._stored.read(_STORED_BYTES)):
                rest += more
                continue
            if self._compression == "xz" and zeros % 4:
                raise Damaged(f"its xz data is damaged ({zeros} bytes of padding, and not a multiple of 4)")
            if not rest or of_bytes(rest) == self._compression:
                return rest
            if _is_cut_off(self._compression, rest):
                raise self._truncated()
            at = self._stored.tell() - len(rest) if self._stored.seekable() else None
            where = "its end" if at is None else f"byte {at} of the file on"
            raise Damaged(f"what follows from {where} is no {self._compression} data")

    def _arrow(self) -> Callable[[int], bytes]:
        pyarrow = import_module("pyarrow")
        inner = pyarrow.CompressedInputStream(pyarrow.PythonFile(self._stored, "r"), self._compression)

        def read(most: int) -> bytes:
            try:
                found: bytes = inner.read(most)
            except OSError as error:
                if error.errno is not None:
                    raise
                raise (self._truncated() if "Truncated" in str(error) else self._damaged(error)) from error
            return found

        return read

    def _only_file(self) -> Callable[[int], bytes]:
        """Reads the only file of a zip archive; which of several are meant, only the user knows."""
        zipfile = import_module("zipfile")
        if not self._stored.seekable():
            raise Damaged("it is a zip archive, which is read from its end: copy it to a file")
        try:
            archive = zipfile.ZipFile(self._stored)
            files = [info for info in archive.infolist() if not info.is_dir()]
            if not files:
                raise Damaged("it is a zip archive without a file in it")
            if len(files) > 1:
                what = f"it is a zip archive of {len(files)} files, and only those of one file are read"
                raise Damaged(f"{what}: let unzip -p unpack what you want of it")
            if files[0].flag_bits & 1:
                raise Damaged("it is a zip archive with a password: let unzip -p ask for it, and unpack it")
            if files[0].compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                method = files[0].compress_type
                raise Damaged(f"it is a zip archive packed by method {method}, and only 0 (stored) and 8 (deflate) are read")
            inner = archive.open(files[0])
        except (zipfile.BadZipFile, EOFError) as error:
            raise Damaged("it is a zip archive that is truncated or damaged") from error

        def read(most: int) -> bytes:
            try:
                found: bytes = inner.read(most)
            except (zipfile.BadZipFile, zlib.error, EOFError) as error:
                raise self._damaged(error) from error
            return found

        return read

    def _truncated(self) -> Damaged:
        return Damaged(f"the file is truncated, its {self._compression} data is not complete")

    def _damaged(self, error: Exception) -> Damaged:
        if "Memory usage limit" in str(error):
            most = f"{_XZ_BYTES_MAX >> 20} MiB of memory"
            return Damaged(f"to decode its {self._compression} data takes more than {most}: pack it with a smaller window")
        return Damaged(f"its {self._compression} data is damaged ({error})")


# Writing.


def packed(file: BinaryIO, name: str) -> BinaryIO:
    """Returns where to write the content of a file of this name.

    That is the file itself, or a packer, which must be closed.

    It has the default level of the format's own tool, and no time, so equal content gives equal files.
    """
    compression = of_name(name)
    made: Any = file
    try:
        match compression:
            case "gzip":
                made = import_module("gzip").GzipFile("", "wb", 6, file, 0)
            case "bzip2":
                made = import_module("bz2").BZ2File(file, "wb")
            case "xz":
                made = import_module("lzma").LZMAFile(file, "wb")
            case "zstd" if (zstd := _zstd()) is not None:
                made = zstd.ZstdFile(file, "wb")
            case "zstd" | "lz4" as codec:
                made = import_module("pyarrow").CompressedOutputStream(file, codec)
            case "zip":
                why = "zip archives are read and not written: let its name end with .gz, .zst, .bz2, .xz or .lz4"
                raise PlanError(f"cannot write {printable(name)}: {why}")
    except ImportError as error:
        raise PlanError(f"cannot write {printable(name)}: {_missing(compression or '')}") from error
    return cast(BinaryIO, made)
