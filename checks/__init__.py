"""The built-in checks, one family a file; they import the words and the contract of `inspector.check`, as strangers' do."""
