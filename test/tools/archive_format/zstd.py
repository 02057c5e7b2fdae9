"""The system's libzstd by ctypes: what archives need of it."""
import ctypes
import ctypes.util

_LIBRARY = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
_UNKNOWN = (1 << 64) - 2  # ZSTD_CONTENTSIZE_UNKNOWN; _ERROR is one above


def _function(name, result, *arguments):
    function = getattr(_LIBRARY, name)
    function.restype, function.argtypes = result, arguments
    return function


_size, _bytes, _pointer = ctypes.c_size_t, ctypes.c_char_p, ctypes.c_void_p
_is_error = _function("ZSTD_isError", ctypes.c_uint, _size)
_bound = _function("ZSTD_compressBound", _size, _size)
_compress = _function("ZSTD_compress", _size, _pointer, _size, _bytes, _size, ctypes.c_int)
_content_size = _function("ZSTD_getFrameContentSize", ctypes.c_ulonglong, _bytes, _size)
_frame_size = _function("ZSTD_findFrameCompressedSize", _size, _bytes, _size)
_create = _function("ZSTD_createDCtx", _pointer)
_free = _function("ZSTD_freeDCtx", _size, _pointer)
_decompress = _function("ZSTD_decompress_usingDict", _size, _pointer, _pointer, _size, _bytes, _size, _bytes, _size)


def compress(data, level=3):
    """One frame that says its content size."""
    room = ctypes.create_string_buffer(_bound(len(data)))
    size = _compress(room, len(room), data, len(data), level)
    if _is_error(size):
        raise RuntimeError("ZSTD_compress failed")
    return room.raw[:size]


def frame_size(data):
    """Bytes of the first frame, or None."""
    size = _frame_size(data, len(data))
    return None if _is_error(size) else size


def content_size(frame):
    """What the frame says, or None."""
    size = _content_size(frame, len(frame))
    return None if size >= _UNKNOWN else size


def decompress(frame, size, dictionary):
    """`size` bytes, or None if that is not what the frame holds."""
    room = ctypes.create_string_buffer(max(size, 1))
    context = _create()
    try:
        got = _decompress(context, room, size, frame, len(frame), dictionary, len(dictionary))
    finally:
        _free(context)
    return None if _is_error(got) or got != size else room.raw[:size]
