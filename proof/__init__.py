"""The proof on a real trainer: TRL's GRPO on a toy whose verifier can be fooled, with the whole service in the loop."""
