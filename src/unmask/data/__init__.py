"""From text files to rows of inputs and targets, with numpy alone. No torch."""
