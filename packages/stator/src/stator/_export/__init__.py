"""Export: one call captured whole (`_capture.py`), and as a `torch.export.ExportedProgram`
(`_exported_program.py`). Start at `_api.py`."""
