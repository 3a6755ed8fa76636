"""Sample images with a pipeline whose network is compiled."""

import torch
from diffusers import DDIMScheduler, DDPMPipeline, UNet2DModel


def main():
    torch.manual_seed(0)
    network = UNet2DModel(
        sample_size=8,
        in_channels=3,
        out_channels=3,
        layers_per_block=1,
        block_out_channels=(8, 16),
        norm_num_groups=4,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )
    pipeline = DDPMPipeline(network, DDIMScheduler())
    pipeline.set_progress_bar_config(disable=True)
    pipeline.unet = torch.compile(pipeline.unet)
    images = pipeline(
        batch_size=2,
        generator=torch.manual_seed(1),
        num_inference_steps=3,
        output_type="np",
    ).images
    print(f"{images.shape}, mean {images.mean():.4f}")


if __name__ == "__main__":
    main()
