"""Why an image was refused: one exception per reason, each with a message that says what to do.

A message names the file, the DICOM tag and its value. It never quotes a tag that identifies the patient.
"""

import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clnet.errors import ClnetError


class ImageError(ClnetError):
    """An image file that cannot be used as a mammogram; the root of the reasons below."""


class NotAnImageError(ImageError):
    """No such file, no format that is read here, or a DICOM object without pixels."""


class DamagedImageError(ImageError):
    """Truncated, or its tags and its pixel data do not fit together."""


class ImageTooLargeError(ImageError):
    """More pixels than any mammogram has: refused before memory is spent on it."""


class MultiFrameError(ImageError):
    """Several frames, such as a tomosynthesis stack, where one image is expected."""


class ColourImageError(ImageError):
    """Colour or palette pixels where grey values are expected."""


class UnsupportedPixelsError(ImageError):
    """Grey pixels in a form that is not read here, such as 32 bits or one bit."""


class CodecError(ImageError):
    """Compressed in a way that nothing installed here can decode."""


class LateralityConflictError(ImageError):
    """Two tags of one file that name different breasts."""


_one_thread_at_a_time = threading.Lock()
if hasattr(os, "register_at_fork"):  # a child must not inherit the lock of a thread that it does not have
    os.register_at_fork(
        before=_one_thread_at_a_time.acquire,
        after_in_parent=_one_thread_at_a_time.release,
        after_in_child=_one_thread_at_a_time.release,
    )


@contextmanager
def refusing_damage(file: Path) -> Iterator[None]:
    """Around calls into image libraries: whatever they raise says that the file is damaged.

    Their warnings are silenced, for they may quote patient data; what matters is said in
    `ImageHeader.warnings`. Python's warning filters belong to the whole process, hence the lock.
    """
    with _one_thread_at_a_time, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        except ClnetError:
            raise
        except MemoryError as error:
            raise ImageTooLargeError(
                f"{file}: takes more memory than there is. Remove it, or give the process more memory."
            ) from error
        except Exception as error:
            raise DamagedImageError(
                f"{file}: cannot be read as the image that it claims to be ({type(error).__name__}): "
                "it is damaged or truncated. Fetch the file again from its source."
            ) from error
