"""The parts of the pages that Streamlit has no element for; they write foreign text as text, never as HTML."""
