"""How kernels are laid over matrices."""

import pytest
import torch

from unmask.nets.kernels.launch import grid_by_columns, grid_by_rows, grid_by_warps, partial_sums, power_of_two

CPU = torch.device("cpu")


@pytest.mark.parametrize(("number", "found"), [(1, 16), (16, 16), (17, 32), (768, 1024), (1024, 1024)])
def test_powers_of_two(number, found):
    assert power_of_two(number) == found


def test_a_block_can_have_whole_rows():
    tiles = grid_by_rows(1000, 768, CPU)
    assert (tiles.rows, tiles.block, tiles.across) == (2, 1024, 1)
    assert grid_by_rows(1000, 64, CPU).rows == 32
    assert grid_by_rows(1000, 4096, CPU).warps == 8


def test_a_norm_has_one_warp_for_each_row_that_is_not_too_wide():
    tiles = grid_by_warps(1000, 768, CPU)
    assert (tiles.rows, tiles.block, tiles.across, tiles.warps) == (1, 1024, 1, 1)
    assert (grid_by_warps(1000, 256, CPU).rows, grid_by_warps(1000, 256, CPU).warps) == (4, 1)
    assert (grid_by_warps(1000, 4096, CPU).rows, grid_by_warps(1000, 4096, CPU).warps) == (1, 4)


def test_columns_are_shared_out():
    tiles = grid_by_columns(1000, 3072, CPU)
    assert (tiles.rows, tiles.block, tiles.across) == (2, 1024, 3)
    assert tiles.grid == (tiles.down, 3)
    assert tiles.down >= 1


def test_no_more_programs_than_there_are_blocks():
    assert grid_by_rows(3, 1024, CPU).down == 2
    assert partial_sums(torch.zeros(1), grid_by_rows(3, 1024, CPU), 3, 768).shape == (2, 3, 768)
