"""The machine that is measured: its architecture, what NVML and the system say of it, and which commit measures it."""
