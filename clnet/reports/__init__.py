"""Findings in the forms that people and programs read: DICOM SR, pictures, COCO, 3D Slicer."""
