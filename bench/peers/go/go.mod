module ebb/bench/peers/go

go 1.22
